package sshflags

import (
	"fmt"
	"strings"
)

// A Line is a command line of ssh, taken apart.
type Line struct {
	Given       []Given  // the flags, in order
	Destination string   // "" if there is none
	Command     []string // words, which ssh joins by blanks
	Args        []string // all as it was given, in ssh's own words: without those of [Own]
	IsHanded    bool     // a flag leaves all to the user's own ssh ([Handed])

	before int // how many of the flags stand before the destination
}

// A Given is a flag on a command line, with its value if it has one.
type Given struct {
	Flag  Flag
	Value string
}

// Own reads a word that begins with two hyphens and is none of ssh's, the first of words. It
// returns how many of them belong to it.
type Own func(words []string) (taken int, err error)

// Parse reads the arguments of ssh as ssh does: flags may follow the destination, and the
// command begins where they end (main in ssh.c, and getopt in openbsd-compat). own reads the
// words that are not ssh's, if it is not nil. Errors are a *UsageError, or own's; there is none
// behind a flag that is Handed, since the user's own ssh may stop there.
func Parse(args []string, own Own) (Line, error) {
	p := parser{words: args, own: own}
	l := &p.line
	ended, err := p.flags()
	if err == nil && len(p.words) > 0 {
		l.Destination, l.before = p.words[0], len(l.Given)
		p.take(1)
		if !ended {
			_, err = p.flags()
		}
		l.Command = p.words
	}
	l.Args = append(l.Args, p.words...)
	if l.IsHanded {
		err = nil
	}
	return *l, err
}

// A parser reads words into a line.
type parser struct {
	words []string // what is left
	own   Own
	line  Line
}

// flags reads words up to the first that is no flag. ended: the last word was --, which ends
// the flags, even if it was a flag's value (opt_terminated in ssh.c).
func (p *parser) flags() (ended bool, err error) {
	for len(p.words) > 0 && len(p.words[0]) > 1 && p.words[0][0] == '-' {
		word, taken := p.words[0], 1
		switch {
		case word == "--":
			p.take(1)
			return true, nil
		case strings.HasPrefix(word, "--"):
			taken, err = p.long()
		default:
			taken, err = p.cluster()
		}
		if err != nil {
			return false, err
		}
		ended = p.words[taken-1] == "--"
		p.words = p.words[taken:]
	}
	return ended, nil
}

// take moves words into the line as they are.
func (p *parser) take(n int) {
	p.line.Args = append(p.line.Args, p.words[:n]...)
	p.words = p.words[n:]
}

// cluster reads the letters of the first word. A letter with a value has the rest of the word,
// or the next one.
func (p *parser) cluster() (taken int, err error) {
	word := p.words[0]
	taken = 1
	for i := 1; i < len(word); i++ {
		flag, ok := Find(word[i])
		if !ok {
			return 0, &UsageError{fmt.Sprintf("unknown option -- %c", word[i])}
		}
		value := ""
		if flag.Value != "" {
			if value = word[i+1:]; value == "" {
				if len(p.words) < 2 {
					return 0, &UsageError{fmt.Sprintf("option requires an argument -- %c", flag.Letter)}
				}
				value, taken = p.words[1], 2
			}
			i = len(word)
		}
		p.give(Given{flag, value})
	}
	p.line.Args = append(p.line.Args, p.words[:taken]...)
	return taken, nil
}

// long reads --name, --name value or --name=value.
func (p *parser) long() (taken int, err error) {
	name, value, hasValue := strings.Cut(p.words[0][2:], "=")
	flag, ok := findLong(name)
	switch {
	case !ok && p.own == nil:
		return 0, &UsageError{"unknown option -- -"} // as for ssh
	case !ok:
		return p.own(p.words)
	case hasValue && flag.Value == "":
		return 0, &UsageError{"option doesn't take an argument -- " + name}
	case hasValue || flag.Value == "":
		taken = 1
	case len(p.words) < 2:
		return 0, &UsageError{"option requires an argument -- " + name}
	default:
		value, taken = p.words[1], 2
	}
	given := Given{flag, value}
	p.give(given)
	p.line.Args = append(p.line.Args, given.words()...)
	return taken, nil
}

func (p *parser) give(g Given) {
	p.line.Given = append(p.line.Given, g)
	p.line.IsHanded = p.line.IsHanded || g.Flag.Fate == Handed
}

// A UsageError says what is wrong with a command line, in the words of ssh.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// Has reports whether a flag was given.
func (l *Line) Has(letter byte) bool { return l.Count(letter) > 0 }

// Count returns how often a flag was given.
func (l *Line) Count(letter byte) (n int) {
	for _, g := range l.Given {
		if g.Flag.Letter == letter {
			n++
		}
	}
	return n
}

// Values returns the values that a flag was given, in order.
func (l *Line) Values(letter byte) (values []string) {
	for _, g := range l.Given {
		if g.Flag.Letter == letter {
			values = append(values, g.Value)
		}
	}
	return values
}

// Last returns the last value of a flag, "" if it was not given.
func (l *Line) Last(letter byte) string {
	values := l.Values(letter)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// Join is the command as ssh sends it; "" for none.
func (l *Line) Join() string { return strings.Join(l.Command, " ") }

// BeforeDestination returns the flags before the destination.
func (l *Line) BeforeDestination() []Given { return l.Given[:l.before] }

// BehindDestination returns the flags behind it.
func (l *Line) BehindDestination() []Given { return l.Given[l.before:] }
