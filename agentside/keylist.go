package agentside

import (
	"bytes"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxListLine is the longest line of gpg's that is looked at, in bytes. A user ID may be
// longer; its line is then skipped.
const maxListLine = 8 << 10

// list returns the keys that gpg lists. It does not ask for the names of those who
// signed (fast-list-mode), for each of which gpg would search the keyring.
func (k Keyring) list(ctx context.Context, args ...string) ([]Key, error) {
	var listed keyList
	args = append([]string{"--with-colons", "--fast-list-mode", "--with-sig-list", "--no-auto-check-trustdb"}, args...)
	if err := k.run(ctx, &listed, args...); err != nil {
		return nil, err
	}
	return listed.end(), nil
}

// signatureForm is the form of Key.SelfSignatures.
var signatureForm = regexp.MustCompile(`^[0-9A-F]{0,8}-[0-9a-f]{2}-[0-9]{1,10}$`)

// keyList reads a listing (GnuPG, doc/DETAILS) as gpg writes it. The listing may be of any
// length: what is kept of it is one line, and what is needed of each key.
type keyList struct {
	keys []Key
	line []byte
	long bool // the line is longer than maxListLine: the rest of it is dropped

	key    *Key                 // the key that is being listed; at first it has no fingerprint
	id     string               // its key ID
	part   string               // the part of it that signatures are listed for; see Key
	latest map[string]signature // the signatures that count; the key says what a later one replaces
}

type signature struct {
	created int64
	words   []string // as in Key.SelfSignatures; several if they are of the same second
}

// noPart is the part of signatures that are not looked at.
const noPart = "-"

// Write takes a piece of the listing. It never fails.
func (l *keyList) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		chunk, after, ended := bytes.Cut(rest, []byte("\n"))
		l.long = l.long || len(l.line)+len(chunk) > maxListLine
		if !l.long {
			l.line = append(l.line, chunk...)
		}
		if ended {
			l.takeLine()
		}
		rest = after
	}
	return len(p), nil
}

func (l *keyList) takeLine() {
	if !l.long {
		l.take(listRecord(strings.Split(strings.TrimRight(string(l.line), "\r"), ":")))
	}
	l.line, l.long = l.line[:0], false
}

// end returns the keys, after the last Write.
func (l *keyList) end() []Key {
	l.takeLine()
	l.endKey()
	return l.keys
}

// listRecord is the fields of a record. As in gpg's documentation, their numbers begin at 1.
type listRecord []string

func (r listRecord) field(number int) string {
	if number > len(r) {
		return ""
	}
	return r[number-1]
}

// take reads a record. A key's fingerprint is in the first fpr record after its pub or
// sec record.
func (l *keyList) take(r listRecord) {
	kind := r.field(1)
	if kind == "pub" || kind == "sec" {
		l.endKey()
		l.key, l.id, l.part, l.latest = &Key{}, r.field(5), "", map[string]signature{}
		return
	}
	if l.key == nil {
		return
	}
	switch kind {
	case "fpr":
		if l.key.Fingerprint != "" {
			return
		}
		l.key.Fingerprint = r.field(10)
		if !fingerprintForm.MatchString(l.key.Fingerprint) {
			l.key = nil
		}
	case "sub", "ssb":
		l.part = r.field(5)
		l.part = l.part[max(0, len(l.part)-8):]
	case "uid":
		l.part = r.field(8)
		l.part = l.part[:min(8, len(l.part))]
	case "uat": // photos are not always exported
		l.part = noPart
	case "sig", "rev":
		if r.field(5) == l.id && l.part != noPart {
			l.sign(r.field(11), r.field(6))
		}
	}
}

// sign reads a signature, whose class is like "13x" or "30x,00". Of the signatures of one
// part only the latest counts, since export-minimal leaves out the others; of those of the
// primary key, the latest of each class (RFC 9580 section 5.2.1). A local signature, which
// has an l instead of the x, is not exported.
func (l *keyList) sign(class, created string) {
	if len(class) < 3 || class[2] != 'x' {
		return
	}
	word := l.part + "-" + class[:2] + "-" + created
	at, err := strconv.ParseInt(created, 10, 64)
	if err != nil || !signatureForm.MatchString(word) {
		return
	}
	replaces := l.part
	if l.part == "" {
		replaces = class[:2]
	}
	latest := l.latest[replaces]
	switch {
	case at > latest.created:
		l.latest[replaces] = signature{at, []string{word}}
	case at == latest.created && !slices.Contains(latest.words, word):
		l.latest[replaces] = signature{at, append(latest.words, word)}
	}
}

func (l *keyList) endKey() {
	if l.key == nil {
		return
	}
	for _, replaces := range slices.Sorted(maps.Keys(l.latest)) {
		l.key.SelfSignatures = append(l.key.SelfSignatures, l.latest[replaces].words...)
	}
	if l.key.Fingerprint != "" {
		l.keys = append(l.keys, *l.key)
	}
	l.key = nil
}
