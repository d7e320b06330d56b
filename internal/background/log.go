package background

import (
	"io"
	"os"
	"sync"
	"time"

	"gpg-bridge/internal/share"
)

// maxLog bounds the log of a bridge in the background, in bytes. One that
// cannot reach its host for a week says the same thing ten thousand times.
const maxLog = 256 << 10

// A logFile has the messages of a process without a terminal, with the time of each. If they
// go to a file, it is emptied when it is full: what matters for the present comes last.
type logFile struct {
	mu   sync.Mutex
	id   string // of the target whose log it may be
	out  io.Writer
	file *os.File // nil: not a file
	size int64
}

func newLog(out io.Writer, id string) *logFile {
	l := &logFile{out: out, id: id}
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			l.file, l.size = file, info.Size()
		}
	}
	return l
}

func (l *logFile) Write(message []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := append([]byte(time.Now().Format(time.RFC3339)+" "), message...)
	if l.file != nil && l.size+int64(len(line)) > maxLog {
		if err := l.empty(); err != nil {
			return 0, err
		}
		l.size = 0
	}
	n, err := l.out.Write(line)
	l.size += int64(n)
	return len(message), err
}

// empty opens the target's log by its name, since on Windows a handle that appends cannot
// empty its file (private, Dir.Empty). Any other file, such as a service manager's, has only
// its handle.
func (l *logFile) empty() error {
	dir, err := share.Open()
	if err != nil {
		return l.file.Truncate(0)
	}
	defer dir.Close()
	named, err := os.Lstat(dir.LogPath(l.id))
	ours, statErr := l.file.Stat()
	if err != nil || statErr != nil || !os.SameFile(named, ours) {
		return l.file.Truncate(0)
	}
	return dir.EmptyLog(l.id)
}
