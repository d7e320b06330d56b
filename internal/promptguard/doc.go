// Package promptguard keeps a session off the user's terminal while a pinentry asks there.
package promptguard
