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

// readSocketFile returns what is at path, through symbolic links. The zero
// SocketFile stands for a socket. A file with a secret in it that others could
// know is refused.
func readSocketFile(path string) (assuan.SocketFile, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() == fs.ModeSocket {
		return assuan.SocketFile{}, err
	}
	if err := mustBeFile(info); err != nil {
		return assuan.SocketFile{}, err
	}
	// Between the look and the open the path may have become a FIFO, at which
	// an open waits for ever; openFlags see to that.
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return assuan.SocketFile{}, err
	}
	defer func() { _ = f.Close() }()
	return parseOpenFile(f)
}

// parseOpenFile judges the file that is open, not the path, which somebody
// might change meanwhile.
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
		err = checkSecret(info)
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
