//go:build unix

package proc

import "context"

// UntilParentEnds returns a context that ends with the program that has started us, if
// nothing else shows that end. On Unix the end of our standard input does, so it only ends
// with ctx.
func UntilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
