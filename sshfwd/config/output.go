package config

import (
	"bytes"
	"os"
	"sync"
)

// endOfOutput is written behind what a program has printed when it has ended.
const endOfOutput = "\x00end of the output\x00"

// An output collects what a program prints. Programs that it has started, such as that of a
// Match exec, may keep their end open for longer, and are not waited for.
type output struct {
	to, from *os.File
	err      error // why there is no pipe
	read     []byte
	reading  sync.WaitGroup
}

// newOutput returns an output whose field to is for the program. The caller calls end.
func newOutput() *output {
	o := &output{}
	if o.from, o.to, o.err = os.Pipe(); o.err == nil {
		o.reading.Go(o.readAll)
	}
	return o
}

func (o *output) readAll() {
	buf := make([]byte, 32<<10)
	for {
		n, err := o.from.Read(buf)
		o.read = append(o.read, buf[:n]...)
		text, _, ended := bytes.Cut(o.read, []byte(endOfOutput))
		if o.read = text; ended || err != nil {
			return
		}
	}
}

// end returns what was printed by now.
func (o *output) end() []byte {
	if o.err != nil {
		return nil
	}
	_, _ = o.to.WriteString(endOfOutput)
	_ = o.to.Close()
	o.reading.Wait()
	_ = o.from.Close()
	return o.read
}
