package faults

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// atOnce is how many pairs run concurrently.
const atOnce = "32"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
