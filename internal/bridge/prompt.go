package bridge

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/pinentry"
	"gpg-bridge/remoteside"
)

// promptPatience bounds the question where the agent would ask its user. Without an answer
// by then, nor an earlier one, the agent may not ask.
const promptPatience = 2 * time.Second

// A PromptError says that an operation was refused because its prompt would have opened on a
// terminal whose input another program reads, or because that could not be ruled out.
type PromptError struct {
	Terminal string
	Reader   pinentry.Reader // who reads what is typed there
	Doubtful string          // the pinentry's name, if it may open a window instead
	Ended    bool            // the prompt had opened there, and was ended

	Unknown error // why it could not be found out; the others are empty then
}

func (e *PromptError) Error() string {
	const refused = "gpg on the host was refused what needs your passphrase or PIN: "
	if e.Unknown != nil {
		return refused + "it could not be found out where pinentry would ask"
	}
	asks := "pinentry would ask"
	switch {
	case e.Ended:
		asks = "pinentry asked"
	case e.Doubtful != "":
		asks = fmt.Sprintf("pinentry (%s) may ask", e.Doubtful)
	}
	return refused + fmt.Sprintf("%s on %s, where %s (process %d) reads what you type and sends it to its host",
		asks, e.Terminal, e.Reader.Name, e.Reader.PID)
}

func (e *PromptError) Unwrap() error { return e.Unknown }

// Hint says what to do.
func (e *PromptError) Hint() string {
	if e.Unknown != nil {
		return "see whether gpg-agent answers: gpg-connect-agent 'getinfo std_startup_env' /bye"
	}
	if e.Doubtful != "" {
		return "see that its display works, or name a pinentry with windows itself in gpg-agent.conf; or use gpg-bridge ssh instead of ssh there"
	}
	return "use a pinentry with windows, or gpg-bridge ssh instead of ssh there; or let it ask on another terminal: gpg-connect-agent updatestartuptty /bye"
}

// openSession opens a conversation with the agent. If what is typed at a prompt would also
// go to another program, the agent is told not to ask; it then refuses what needs a prompt,
// which it knows best itself. That is decided now and, for a conversation in which the agent
// may ask, again when a key is used: the host may keep the conversation idle until then for
// as long as it likes.
func (l *Local) openSession(ctx context.Context, refused func(*PromptError)) (remoteside.Agent, error) {
	decided := time.Now()
	if refusal := l.misplacedPrompt(ctx); refusal != nil {
		session, err := l.muteSession(ctx, refusal, refused)
		var none *agentside.NoAgentError
		if !errors.As(err, &none) {
			return session, err
		}
		// Connect starts an agent, or reaches it in another way. Whether that may ask is
		// decided when a key is used.
		decided = time.Time{}
	}
	session, err := l.Agent.Connect(ctx)
	if err != nil {
		return nil, err // not a typed nil
	}
	if l.Agent.AllowUnrestricted {
		return session, nil
	}
	return newAskingAgent(ctx, session, l, decided, refused), nil
}

func (l *Local) muteSession(ctx context.Context, refusal *PromptError, refused func(*PromptError)) (remoteside.Agent, error) {
	var none *agentside.NoAgentError
	if errors.As(refusal.Unknown, &none) {
		return nil, none
	}
	session, err := l.Agent.ConnectMute(ctx)
	if err != nil {
		return nil, err
	}
	return &muteAgent{Agent: session, refused: func() { refused(refusal) }}, nil
}

func (l *Local) promptRefused(why *PromptError) {
	if l.PromptRefused != nil {
		l.PromptRefused(why)
	}
}

// misplacedPrompt returns why a prompt must not be opened now, or nil.
func (l *Local) misplacedPrompt(ctx context.Context) *PromptError {
	if l.Agent.AllowUnrestricted { // the host itself may say where the agent asks
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, promptPatience)
	defer cancel()
	found, err := l.prompts.get(ctx, func() (Prompt, error) { return promptOf(ctx, l.Agent) }, pinentry.Readers)
	if err != nil {
		return &PromptError{Unknown: err}
	}
	return found
}

// A Prompt is the program with which an agent asks its user, and the path of the terminal
// on which it asks if it is a text pinentry.
type Prompt struct {
	Program, Terminal string

	env   map[string]string // the program's environment
	lives func() bool       // whether the agent that told this still runs; nil: not known
}

// on returns why the prompt must not be opened while these programs read terminals, or nil.
func (p Prompt) on(readers []pinentry.Reader) *PromptError {
	device := pinentry.Device(p.Terminal)
	if device == 0 {
		return nil
	}
	reader := pinentry.ReaderAt(device, readers)
	if reader == nil || !pinentry.MayAskOnTerminal(p.Program, p.env) {
		return nil
	}
	refusal := &PromptError{Terminal: p.Terminal, Reader: *reader}
	if !pinentry.AsksOnTerminal(p.Program) {
		refusal.Doubtful = filepath.Base(p.Program)
	}
	return refusal
}

// TextPrompt returns how an agent may ask its user on a terminal on behalf of a restricted
// connection. The Prompt is empty if it would not, does not run, or does not tell.
func TextPrompt(ctx context.Context, agent *agentside.Agent) Prompt {
	prompt, err := promptOf(ctx, agent)
	if err != nil || prompt.Terminal == "" || !pinentry.MayAskOnTerminal(prompt.Program, prompt.env) {
		return Prompt{}
	}
	return prompt
}

// promptOf asks the agent. The Prompt is empty, without an error, where nothing can be found
// out: if the agent is not the GnuPG home's own, or there is no gpgconf.
func promptOf(ctx context.Context, agent *agentside.Agent) (Prompt, error) {
	program, err := agent.Pinentry(ctx)
	if errors.Is(err, agentside.ErrNoGpgconf) {
		return Prompt{}, nil
	}
	if err != nil {
		return Prompt{}, err
	}
	prompt := Prompt{Program: program}
	err = agent.Identity(ctx, func(id agentside.Identity) (err error) {
		if process, err := pinentry.AgentOf(id.PID); err == nil {
			prompt.lives = process.Lives
		}
		prompt.env, err = id.StartupEnvironment()
		return err
	})
	var failed *agentside.GpgconfError
	if errors.Is(err, agentside.ErrNotOwnAgent) && ctx.Err() == nil && !errors.As(err, &failed) {
		return Prompt{}, nil
	}
	if err != nil {
		return Prompt{}, err
	}
	prompt.Terminal = prompt.env["GPG_TTY"]
	return prompt, nil
}
