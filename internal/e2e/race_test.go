//go:build race

package e2e

// raceDetector: the program is built as its tests are.
const raceDetector = true
