package bridge

// perBridge is how many sessions one bridge serves at once, and so the most
// conversations with the agent that the gpgs of one host can have open.
//
// gpg-agent does not raise its descriptor limit, which is 256 on macOS and 1024
// on most Linux systems; it has 11 descriptors open when idle and needs one per
// conversation and one for each key that it reads. At its limit it does worse
// than refuse: it spins, logging "accept failed" some 100,000 times a second,
// and PKSIGN fails. So a bridge stays at half of the smallest limit.
const perBridge = 128

// mostConversations is how many all bridges of one process have together. It
// leaves room for another bridge beside one that is flooded, and for the
// agent's own needs at a limit of 256.
const mostConversations = 192

// A Load is what a bridge holds at a moment.
type Load struct {
	Sessions      int // that are being served, those that wait for the agent included
	Conversations int // with the agent, of all bridges of its Local
}

// Load counts; a bridge that nobody uses, not even its own verification, has
// none of either.
func (b *Bridge) Load() Load {
	return Load{Sessions: len(b.server.Sessions()), Conversations: b.local.gate.count()}
}
