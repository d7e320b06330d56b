// Package background keeps a target's bridge up in a process without a terminal: it starts
// such processes, runs in them, lists them and ends them. A target has one bridge at any time,
// so a process that is to stay makes way for a session of the user's, and stands by until that
// ends.
package background
