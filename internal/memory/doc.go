// Package memory keeps small facts about accounts on hosts between runs, in files that
// only the user can read.
package memory
