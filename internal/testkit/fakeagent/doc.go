// Package fakeagent has an agent that says what a test tells it to, and helpers for the other
// ends of conversations with one.
package fakeagent
