package hostkey

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"gpg-bridge/internal/atomicfile"
	"gpg-bridge/sshfwd/config"
)

// rewriteTries is how often a file is read again that another program, ssh perhaps, changes
// before it is replaced.
const rewriteTries = 5

var errChanging = errors.New("it keeps changing")

// rewrite replaces the host's lines in a known_hosts file (hostfile_replace_entries in
// hostfile.c), and keeps what it was as FILE.old. Unlike ssh, it follows a symbolic link and
// keeps the file's mode.
func (u *Update) rewrite(ctx context.Context, file string, keys []*currentKey) (err error) {
	if err := checkReplaceable(file); err != nil {
		if keys == nil { // no lines to remove
			return nil
		}
		return err
	}
	if _, err := os.Stat(file); err != nil && keys == nil {
		return err
	}
	file, unlock, err := lockKnownHosts(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for range rewriteTries {
		if err = u.replace(ctx, file, keys); !errors.Is(err, errChanging) {
			return err
		}
	}
	return err
}

func (u *Update) replace(ctx context.Context, file string, keys []*currentKey) error {
	before, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if before != nil && !before.Mode().IsRegular() { // since checkReplaceable
		return errChanging
	}
	var data []byte
	if before != nil {
		if data, err = config.ReadUserFile(ctx, file); err != nil {
			return err
		}
	}
	changed, isChanged := u.rewritten(data, keys)
	if !isChanged {
		return nil
	}
	return atomicfile.Replace(file, changed, before, func() error {
		if now, _ := os.Stat(file); !isSame(before, now) {
			return errChanging
		}
		return keepOld(file)
	})
}

func isSame(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// keepOld gives the file a second name, under which it stays when it is replaced.
func keepOld(file string) error {
	old := file + ".old"
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(file, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// rewritten is the content of a file without the host's lines, but for those of keys, and
// with lines for the keys that it lacks.
func (u *Update) rewritten(data []byte, keys []*currentKey) (out []byte, changed bool) {
	has := map[*currentKey]nameMatch{}
	for line := range bytes.Lines(data) {
		key, match := u.readLine(string(line), keys)
		if match.any() && key == nil {
			changed = true
			continue
		}
		if key != nil {
			has[key] = has[key].or(match)
		}
		out = append(out, line...)
	}
	if n := len(out); n > 0 && out[n-1] != '\n' {
		out = append(out, '\n')
	}
	for _, key := range keys {
		if lines := u.missing(key, has[key]); lines != nil {
			out, changed = append(out, lines...), true
		}
	}
	return out, changed
}

// readLine returns by which names a line is the host's, and which of keys it has, nil for
// another one. Lines with a marker, or that cannot be read, are nobody's (host_delete in
// hostfile.c).
func (u *Update) readLine(line string, keys []*currentKey) (*currentKey, nameMatch) {
	l, ok := parseKnownHostsLine(line)
	if !ok || l.marker != markerNone {
		return nil, nameMatch{}
	}
	key, ok := parseKnownKey(l.key)
	match := u.match(l.names)
	if !ok || !match.any() {
		return nil, nameMatch{}
	}
	if i := slices.IndexFunc(keys, func(k *currentKey) bool { return Same(k, key) }); i >= 0 {
		return keys[i], match
	}
	return nil, match
}

// missing are the lines that a file needs to know the key by all names, nil for none.
func (u *Update) missing(key *currentKey, has nameMatch) []byte {
	host := knownHost{name: u.name, address: u.address, key: key}
	switch {
	case !key.known.any() && !key.proved, has.host && (has.address || u.address == ""):
		return nil
	case has.host:
		host = knownHost{name: u.address, key: key}
	case has.address:
		host.address = ""
	}
	return host.lines(u.config.HashKnownHosts)
}
