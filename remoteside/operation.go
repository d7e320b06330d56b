package remoteside

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// maxWords is how much of the agent's text for an error is kept, in bytes.
const maxWords = 200

// An Operation is one use of a secret key. It holds no payload.
type Operation struct {
	Session  uuid.UUID     // Report.ID
	Verb     string        // PKSIGN or PKDECRYPT
	Keygrip  string        // the one that the client named last (SIGKEY, SETKEY): 40 hex digits, or ""
	At       time.Time     // its end; in Observer.Operating and Leaving, and in Config.Asking, its beginning
	Duration time.Duration // from the command to its answer, including the time that the user took for a PIN

	// Code is the agent's error code of libgpg-error, with the source in the upper
	// byte, and Words is the agent's text for it, which must be escaped before it
	// is shown. They are 0 and "" if the operation succeeded.
	Code  uint32
	Words string

	Unanswered bool // the session ended before the agent had answered

	// Asked is when the client had sent everything that the agent needs before it may
	// ask its user for a PIN. It is zero if the client never had, or if Config.Asking
	// refused the operation. Left says that the client had sent its last byte by then,
	// or by At: most likely it has gone.
	Asked time.Time
	Left  bool
}

// operations follows the uses of secret keys in one session. It is guarded by
// the session's mu, and does nothing if there are no observers and no asking.
type operations struct {
	session   uuid.UUID
	observers []Observer
	asking    func(context.Context, Operation) string // see Config.Asking; may be nil

	verb  string    // of the operation that is under way, or ""
	since time.Time // its beginning
	asked time.Time // its Operation.Asked
	left  bool      // the client has sent its last byte
	grip  [assuan.KeygripDigits]byte
	named bool // grip is set
}

// command notes a command that is about to go to the agent (gnupg agent/command.c).
// It returns "", or the answer that the client gets instead of the agent's.
func (o *operations) command(ctx context.Context, c assuan.Command) (answer string) {
	switch {
	case len(o.observers) == 0 && o.asking == nil:
	case c.Is("PKSIGN"):
		o.begin("PKSIGN")
		return o.ask(ctx)
	case c.Is("PKDECRYPT"):
		o.begin("PKDECRYPT")
	case c.Is("SIGKEY"), c.Is("SETKEY"):
		o.name(c.Keygrip())
	case c.Is("RESET"):
		o.named = false
	}
	return ""
}

// inquired notes the line that ends the answer to an inquiry. It returns "", or the answer
// that the client gets instead of the agent's. PKDECRYPT inquires the ciphertext before it
// looks at the key; later inquiries come while a prompt is open.
func (o *operations) inquired(ctx context.Context, end assuan.Answer) (answer string) {
	if o.verb == "" || !o.asked.IsZero() || end != assuan.AnswerEnd {
		return ""
	}
	return o.ask(ctx)
}

func (o *operations) ask(ctx context.Context) (answer string) {
	now := time.Now()
	if o.asking != nil {
		asking := o.operation(o.since)
		asking.Asked = now
		answer = o.asking(ctx, asking)
	}
	if answer == "" {
		o.asked = now
	}
	return answer
}

// leave notes that the client has sent its last byte.
func (o *operations) leave() {
	o.left = true
	if o.asked.IsZero() {
		return
	}
	for _, observer := range o.observers {
		observer.Leaving(o.operation(o.since))
	}
}

func (o *operations) begin(verb string) {
	o.verb, o.since = verb, time.Now()
	for _, observer := range o.observers {
		observer.Operating(o.operation(o.since))
	}
}

// operation returns the operation that is under way, with this At.
func (o *operations) operation(at time.Time) Operation {
	return Operation{Session: o.session, Verb: o.verb, Keygrip: o.keygrip(), At: at, Asked: o.asked, Left: o.left}
}

func (o *operations) keygrip() string {
	if !o.named {
		return ""
	}
	return string(o.grip[:])
}

// name notes the keygrip that the client has named, or nil.
func (o *operations) name(grip []byte) {
	o.named = copy(o.grip[:], grip) == len(o.grip)
}

// answer notes the OK or ERR that the client got.
func (o *operations) answer(line []byte, kind assuan.Kind) {
	if o.verb == "" {
		return
	}
	done := o.operation(time.Now())
	if kind == assuan.KindERR {
		done.Code, done.Words = uint32(assuan.ErrorCode(line)), errorWords(line)
	}
	o.finish(done)
}

// end notes that the session has ended.
func (o *operations) end() {
	if o.verb == "" {
		return
	}
	done := o.operation(time.Now())
	done.Unanswered = true
	o.finish(done)
}

func (o *operations) finish(done Operation) {
	done.Duration = done.At.Sub(o.since)
	o.verb, o.asked = "", time.Time{}
	for _, observer := range o.observers {
		observer.Operated(done)
	}
}

// errorWords returns the text after the number of an ERR line.
func errorWords(line []byte) string {
	_, rest, _ := bytes.Cut(assuan.Trim(line), []byte(" "))
	_, words, _ := bytes.Cut(rest, []byte(" "))
	return string(words[:min(len(words), maxWords)])
}
