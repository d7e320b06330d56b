package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asProgram in the environment makes the test binary the program itself.
const asProgram = "GPG_BRIDGE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}
