package agentside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"gpg-bridge/assuan"
)

var errRedirectTwice = errors.New("the redirect leads to another redirect")

// readSocketFile returns what is at path, following symbolic links. The zero
// SocketFile stands for a socket. A file is refused if it has a secret that others
// may know.
func readSocketFile(path string) (assuan.SocketFile, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() == fs.ModeSocket {
		return assuan.SocketFile{}, err
	}
	if err := mustBeFile(info); err != nil {
		return assuan.SocketFile{}, err
	}
	// Since the Stat the path may have become a FIFO, which would block the open
	// for ever without openFlags.
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return assuan.SocketFile{}, err
	}
	defer func() { _ = f.Close() }()
	return parseOpenFile(f)
}

// parseOpenFile checks the open file, not its path, which somebody might change
// meanwhile.
func parseOpenFile(f *os.File) (assuan.SocketFile, error) {
	info, err := f.Stat()
	if err == nil {
		err = mustBeFile(info)
	}
	if err != nil {
		return assuan.SocketFile{}, err
	}
	content, err := io.ReadAll(io.LimitReader(f, assuan.MaxSocketFile+1))
	if err != nil {
		return assuan.SocketFile{}, err
	}
	file, err := assuan.ParseSocketFile(content)
	if err == nil && file.Kind != assuan.SocketRedirect {
		err = checkSecret(f, info)
	}
	if err != nil {
		return assuan.SocketFile{}, err
	}
	return file, nil
}

func mustBeFile(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is neither a socket nor a file (%v)", info.Mode())
	}
	return nil
}
