// Package asker answers for the user in tests.
package asker
