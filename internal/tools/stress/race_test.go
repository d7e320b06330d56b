//go:build race

package main

// raceDetector reports whether the tests, and so the program, are built with -race.
const raceDetector = true
