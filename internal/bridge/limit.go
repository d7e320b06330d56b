package bridge

// mostConversations is how many conversations with the agent all bridges of one process may
// have together; each bridge has remoteside.MaxSessions at most. So a second bridge still
// works beside one that is flooded, and an agent limited to 256 descriptors keeps some for
// itself.
const mostConversations = 192

// A Load is what a bridge has open at one moment.
type Load struct {
	Sessions      int // including those that wait for the agent
	Conversations int // with the agent, of all bridges of the Local, including those whose end the agent has not noticed
}

// Load returns what is open now; both are 0 if nobody uses the bridge, not even its own
// verification.
func (b *Bridge) Load() Load {
	return Load{Sessions: len(b.server.Sessions()), Conversations: b.local.gate.count()}
}
