package sshflags

import "slices"

// Asking returns the flags and the destination, in their order, as `ssh -G` is to get them, so
// that it prints what ssh would do. The command may follow. -E and -y are left out, since
// messages of ssh -G are ours to show, and -P is an option: before OpenSSH 9.4 it was another
// flag, without a value.
func (l *Line) Asking() []string {
	return l.words(func(g Given) (Given, bool) {
		switch g.Flag.Letter {
		case 'E', 'y':
			return g, false
		case 'P':
			option, _ := Find('o')
			return Given{option, "Tag=" + g.Value}, true
		}
		return g, true
	})
}

// words returns the words of those flags that keep keeps, as it changes them.
func (l *Line) words(keep func(Given) (Given, bool)) []string {
	var words []string
	add := func(given []Given) {
		for _, g := range given {
			if g, ok := keep(g); ok {
				words = append(words, g.words()...)
			}
		}
	}
	if l.Destination == "" {
		add(l.Given)
		return words
	}
	add(l.Given[:l.before])
	if l.before == len(l.Given) { // a name is never taken for a flag
		return append(words, "--", l.Destination)
	}
	words = append(words, l.Destination)
	add(l.Given[l.before:])
	return append(words, "--")
}

// words are the one or two words of a flag. Even an empty value is one.
func (g Given) words() []string {
	switch letter := "-" + string(g.Flag.Letter); {
	case g.Flag.Value == "":
		return []string{letter}
	case g.Value == "":
		return []string{letter, ""}
	default:
		return []string{letter + g.Value}
	}
}

// Without returns the Line without these flags.
func (l *Line) Without(letters ...byte) *Line {
	less := *l
	less.Given = nil
	for i, g := range l.Given {
		if !slices.Contains(letters, g.Flag.Letter) {
			less.Given = append(less.Given, g)
		} else if i < l.before {
			less.before--
		}
	}
	return &less
}

// Words returns the flags and the destination in their order, from which [Parse] makes the same
// Line. The command may follow.
func (l *Line) Words() []string {
	return l.words(func(g Given) (Given, bool) { return g, true })
}
