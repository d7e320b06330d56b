//go:build !linux

package pinentry

// OfAgent returns ErrUnknown.
func OfAgent(int) ([]Process, error) { return nil, ErrUnknown }

// AgentOf returns ErrUnknown.
func AgentOf(int) (Agent, error) { return Agent{}, ErrUnknown }

// Agents returns ErrUnknown.
func Agents() ([]Agent, error) { return nil, ErrUnknown }

// EndsPrompts is false: the system does not tell.
func EndsPrompts() bool { return false }

// IsListening is false: the system does not tell.
func IsListening(string) bool { return false }

// Prompts returns ErrUnknown.
func (a Agent) Prompts() ([]Process, error) { return nil, ErrUnknown }

// Rest returns false.
func (p Process) Rest() (now Process, ok bool) { return Process{}, false }

// Lives returns false: the system does not tell.
func (a Agent) Lives() bool { return false }
