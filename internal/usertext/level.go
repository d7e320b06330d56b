package usertext

import (
	"errors"
	"slices"
	"strings"
)

// A Level is LogLevel of ssh_config(5), which -q and -v set, too: messages of a greater one
// are not shown. That of a message is the one that ssh has it at (log.c): fatal is Fatal,
// error is Error, logit is Info.
type Level int

// The levels.
const (
	Quiet Level = iota
	Fatal
	Error
	Info
	Verbose
	Debug1
	Debug2
	Debug3
)

func levelNames() []string {
	return []string{"SILENT", "FATAL", "ERROR", "INFO", "VERBOSE", "DEBUG", "DEBUG2", "DEBUG3"}
}

// ParseLevel reads a level as ssh does (log_level_number in log.c); what it does not know is
// Info, the default.
func ParseLevel(name string) Level {
	name = strings.ToUpper(name)
	switch name {
	case "QUIET":
		return Quiet
	case "DEBUG1":
		return Debug1
	}
	if i := slices.Index(levelNames(), name); i >= 0 {
		return Level(i)
	}
	return Info
}

// String is the name that ssh has for the level in its messages (log_level_name in log.c).
func (l Level) String() string { return levelNames()[l] }

// A Message is one or several lines of ssh's own, from a level on.
type Message struct {
	Level Level
	Text  string
}

// A Spoken error is one for which ssh has words, which programs that run ssh look for.
type Spoken interface {
	error
	// SSHSays returns the words, none if ssh has none for this case. complete means that
	// they leave out nothing that Error has.
	SSHSays() (words []Message, complete bool)
}

// SSHSays returns ssh's words for an error, or for one that it wraps.
func SSHSays(err error) (words []Message, complete bool) {
	if spoken, ok := errors.AsType[Spoken](err); ok {
		return spoken.SSHSays()
	}
	return nil, false
}
