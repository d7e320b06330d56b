//go:build race

package main

// raceDetector: the program is built as its tests are.
const raceDetector = true
