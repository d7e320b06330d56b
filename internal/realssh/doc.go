// Package realssh finds the user's own ssh, and lets it take this program's place.
package realssh
