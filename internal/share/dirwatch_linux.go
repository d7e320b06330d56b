package share

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// removalEvents are those after which others may not find a file any more (inotify(7)).
const removalEvents = unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// eventBuffer is enough for several events with the longest names, in bytes.
const eventBuffer = 4096

// A dirWatch signals that something was removed from a directory, or moved there.
type dirWatch struct {
	changed chan struct{} // has a value after that

	path    string
	file    *os.File // nil: inotify is not available
	reading sync.WaitGroup
}

func newDirWatch(path string) *dirWatch {
	w := &dirWatch{path: path, changed: make(chan struct{}, 1)}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return w
	}
	w.file = os.NewFile(uintptr(fd), "inotify")
	w.reading.Go(func() {
		for events := make([]byte, eventBuffer); ; {
			if _, err := w.file.Read(events); err != nil {
				return
			}
			signal(w.changed)
		}
	})
	return w
}

// follow signals, from now on, what happens in the directory that is at the path now. It
// reports false if that is not possible.
func (w *dirWatch) follow() bool {
	if w.file == nil {
		return false
	}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return false
	}
	var added error
	err = raw.Control(func(fd uintptr) { _, added = unix.InotifyAddWatch(int(fd), w.path, removalEvents) })
	return err == nil && added == nil
}

func (w *dirWatch) close() {
	if w.file != nil {
		_ = w.file.Close()
	}
	w.reading.Wait()
}
