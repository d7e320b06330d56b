package remoteside

import (
	"bytes"
	"time"

	"gpg-bridge/assuan"
)

// maxWords bounds what is kept of an agent's words for an error, in bytes.
const maxWords = 200

// An Operation is one use of a secret key. It holds no payload.
type Operation struct {
	Verb     string        // PKSIGN or PKDECRYPT
	Keygrip  string        // which the client named last (SIGKEY, SETKEY): 40 hex digits, or ""
	At       time.Time     // its end
	Duration time.Duration // from the command to its answer; whoever was asked for a PIN took most of it

	// Code is the agent's error as libgpg-error has it, with the source in the
	// upper byte, and Words are the agent's for it, which are to be escaped
	// before anybody sees them; 0 and "" if it went well.
	Code  uint32
	Words string

	Unanswered bool // the session ended before the agent had answered
}

// operations follows the uses of secret keys in one session. It is guarded by
// the session's mu, and does nothing where nobody wants to be told.
type operations struct {
	tell func(Operation)

	verb  string // of the one that is under way, or ""
	since time.Time
	grip  [gripDigits]byte
	named bool // grip is there
}

// command takes note of a command that goes to the agent (gnupg
// agent/command.c). Of nearly all lines it looks at the first byte only.
func (o *operations) command(line []byte) {
	if o.tell == nil || len(line) == 0 {
		return
	}
	switch line[0] | 0x20 {
	case 'p', 's', 'r':
	default:
		return
	}
	verb := assuan.Verb(line)
	switch {
	case assuan.IsVerb(verb, "PKSIGN"):
		o.verb, o.since = "PKSIGN", time.Now()
	case assuan.IsVerb(verb, "PKDECRYPT"):
		o.verb, o.since = "PKDECRYPT", time.Now()
	case assuan.IsVerb(verb, "SIGKEY"), assuan.IsVerb(verb, "SETKEY"):
		o.name(assuan.Trim(line)[len(verb):])
	case assuan.IsVerb(verb, "RESET"):
		o.named = false
	}
}

// name takes the keygrip, which stands behind the options.
func (o *operations) name(arguments []byte) {
	word := bytes.TrimRight(arguments, " \t")
	word = word[bytes.LastIndexAny(word, " \t")+1:]
	if o.named = len(word) == gripDigits; !o.named {
		return
	}
	for i, c := range word {
		if !isHexDigit(c) {
			o.named = false
			return
		}
		o.grip[i] = c
	}
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// answer takes note of the OK or ERR that the client got.
func (o *operations) answer(line []byte) {
	if o.verb == "" {
		return
	}
	done := o.finished()
	if done.Code = uint32(assuan.ErrorCode(line)); assuan.KindOf(line) == assuan.KindERR {
		done.Words = errorWords(line)
	}
	o.tell(done)
}

// end is the session's.
func (o *operations) end() {
	if o.verb == "" {
		return
	}
	done := o.finished()
	done.Unanswered = true
	o.tell(done)
}

func (o *operations) finished() Operation {
	now := time.Now()
	done := Operation{Verb: o.verb, At: now, Duration: now.Sub(o.since)}
	if o.named {
		done.Keygrip = string(o.grip[:])
	}
	o.verb = ""
	return done
}

// errorWords is what stands behind the number of an ERR line.
func errorWords(line []byte) string {
	_, rest, _ := bytes.Cut(assuan.Trim(line), []byte(" "))
	_, words, _ := bytes.Cut(rest, []byte(" "))
	return string(words[:min(len(words), maxWords)])
}
