package sshflags

import "slices"

// Asking returns the flags and the destination, in their order, as `ssh -G` is to get them. The
// command may follow. What ssh -G prints is then what ssh would do:
//   - it says nothing and writes nothing because of -v, -E and -y; the effect of -v and -q on
//     LogLevel is an option
//   - -P is an option, since before OpenSSH 9.4 it was another flag, without a value, and is
//     ignored there
func (l *Line) Asking() []string {
	level := l.logLevel()
	keep := func(g Given) (Given, bool) {
		switch g.Flag.Letter {
		case 'v', 'q':
			return g, level == ""
		case 'E', 'y':
			return g, false
		case 'P':
			option, _ := Find('o')
			return Given{option, "Tag=" + g.Value}, true
		}
		return g, true
	}
	words := l.words(keep)
	if level == "" {
		return words
	}
	return append([]string{"-oLogLevel=" + level}, words...)
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

// logLevel is the LogLevel that -v and -q make, "" without -v: the first -v and each -q set it,
// and every other -v adds to it (main in ssh.c).
func (l *Line) logLevel() string {
	levels := []string{"QUIET", "FATAL", "ERROR", "INFO", "VERBOSE", "DEBUG1", "DEBUG2", "DEBUG3"}
	level, verbose := 0, false
	for _, g := range l.Given {
		switch {
		case g.Flag.Letter == 'q':
			level = 0
		case g.Flag.Letter == 'v' && verbose:
			level = min(level+1, len(levels)-1)
		case g.Flag.Letter == 'v':
			level, verbose = slices.Index(levels, "DEBUG1"), true
		}
	}
	if !verbose {
		return ""
	}
	return levels[level]
}
