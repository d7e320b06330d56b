package agentside

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const tokenPrefix = ".gpg-bridge-"

// tokenName is the form of the names that PutToken makes.
var tokenName = regexp.MustCompile(`^\.gpg-bridge-[0-9a-f]{32}$`)

// tokenLife is longer than it takes to prepare a host. An older token was left by a
// process that was killed.
const tokenLife = time.Minute

// mostEntries is how many files of the directory are looked at for old tokens.
const mostEntries = 1000

// errNotLocated says that no Connect has located the agent's socket yet.
var errNotLocated = errors.New("the agent's socket was not located")

// PutToken creates an empty file with a name that nobody can guess beside the socket
// that the last Connect looked for, whether the agent ran or not. A host on which a
// file of that name is beside a socket sees the same directory, so that socket is
// this agent's. The file must not exist before, so no link is followed. remove
// removes it, and must be called. Old tokens are removed as well.
func (a *Agent) PutToken() (name string, remove func(), err error) {
	a.mu.Lock()
	located := a.located
	a.mu.Unlock()
	if located == "" {
		return "", nil, errNotLocated
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	name = tokenPrefix + hex.EncodeToString(random[:])
	path := filepath.Join(filepath.Dir(located), name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	info, err := file.Stat()
	_ = file.Close()
	if err == nil {
		removeOldTokens(filepath.Dir(path), info.ModTime())
	}
	return name, func() { _ = os.Remove(path) }, nil
}

// removeOldTokens removes this user's tokens that certainly nobody needs any more. now
// is the time of the file system: another machine may share the directory, and use a
// token of its own.
func removeOldTokens(dir string, now time.Time) {
	opened, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = opened.Close() }()
	entries, _ := opened.ReadDir(mostEntries)
	for _, entry := range entries {
		if !tokenName.MatchString(entry.Name()) {
			continue
		}
		if info, err := entry.Info(); err == nil && isOldToken(info, now) {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

func isOldToken(info fs.FileInfo, now time.Time) bool {
	return info.Mode().IsRegular() && info.Size() == 0 && isOwn(info) && now.Sub(info.ModTime()) > tokenLife
}
