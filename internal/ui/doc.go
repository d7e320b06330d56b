// Package ui shows messages to the user and asks them questions: every message, question and
// exit status of the program passes here.
package ui
