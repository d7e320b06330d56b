package config

import (
	"context"
	"fmt"
	"io"
	"os"
)

// maxUserFile is the size limit of a file that the configuration names, in bytes.
const maxUserFile = 64 << 20

// ReadUserFile reads a file that the user's configuration names, of 64 MiB at most. A
// FIFO or the like may block the read for ever, as it does in ssh: ReadUserFile then
// returns ctx's cause when ctx ends, and the goroutine that reads ends with the read, or
// with the process.
func ReadUserFile(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return readBounded(path)
	}
	type content struct {
		data []byte
		err  error
	}
	read := make(chan content, 1)
	go func() {
		data, err := readBounded(path)
		read <- content{data, err}
	}()
	select {
	case c := <-read:
		return c.data, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readRegularFile is ReadUserFile for a file that must be a regular one.
func readRegularFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	return readBounded(path)
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxUserFile+1))
	if err == nil && len(data) > maxUserFile {
		return nil, fmt.Errorf("%q is too big", path)
	}
	return data, err
}
