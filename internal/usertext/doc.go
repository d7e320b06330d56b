// Package usertext is about what the user reads and answers: text from elsewhere that is
// made safe to show, errors with advice, and the interface of whoever asks the user. It
// imports no other package of ours, so that each may use it.
package usertext
