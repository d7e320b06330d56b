// Package detached starts processes of ours that go on when this one has ended.
package detached
