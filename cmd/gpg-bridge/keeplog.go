package main

import (
	"io"
	"os"
	"sync"
	"time"
)

// maxKeepLog bounds the log of a bridge in the background, in bytes. One that
// cannot reach its host for a week says the same thing ten thousand times.
const maxKeepLog = 256 << 10

// A keepLog is the messages of a process that nobody looks at, with the time of
// each. Where they go to a file, it begins anew when it is full: what there is
// to know about the present comes last.
type keepLog struct {
	mu   sync.Mutex
	out  io.Writer
	file *os.File // nil: not a file
	size int64
}

func newKeepLog(out io.Writer) *keepLog {
	l := &keepLog{out: out}
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			l.file, l.size = file, info.Size()
		}
	}
	return l
}

func (l *keepLog) Write(message []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := append([]byte(time.Now().Format(time.RFC3339)+" "), message...)
	if l.file != nil && l.size+int64(len(line)) > maxKeepLog {
		if err := l.file.Truncate(0); err != nil {
			return 0, err
		}
		l.size = 0
	}
	n, err := l.out.Write(line)
	l.size += int64(n)
	return len(message), err
}
