package prepare_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

// exporter exports from a home and notes what it was asked for.
func exporter(h *gpghome.Home, asked *[][]string) func(context.Context, []string) ([]byte, error) {
	return func(ctx context.Context, fingerprints []string) ([]byte, error) {
		if asked != nil {
			*asked = append(*asked, fingerprints)
		}
		out, _, err := h.Gpg(ctx, nil, append([]string{"--armor", "--export"}, fingerprints...)...)
		return out, err
	}
}

func TestPrepareImportsMissingKeysWithOwnertrust(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	h, alice := home(t)
	bob, err := h.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>"})
	require.NoError(t, err)
	var asked [][]string
	options := prepare.Options{
		Evict: true,
		Wanted: []prepare.Key{
			{Fingerprint: alice.Fingerprint, OwnerTrust: 6},
			{Fingerprint: bob.Fingerprint, OwnerTrust: 5},
		},
		Export: exporter(h, &asked),
	}

	bobsKey, err := exporter(h, nil)(t.Context(), []string{bob.Fingerprint})
	require.NoError(t, err)
	r.WriteFile(t, "bob", bobsKey, 0o600)
	r.Run0(t, "gpg --no-autostart --batch --import bob 2>&1")

	p, err := prepare.Prepare(t.Context(), r, options)
	require.NoError(t, err)
	result, err := p.Wait()
	require.NoError(t, err)
	require.Equal(t, []string{alice.Fingerprint}, p.Missing)
	require.Equal(t, []string{alice.Fingerprint}, result.Imported)
	trust := r.Run0(t, "gpg --no-autostart --batch --export-ownertrust")
	require.Contains(t, trust, alice.Fingerprint+":6:")
	require.NotContains(t, trust, bob.Fingerprint, "what was there is left as it was")

	again := r.prepare(t, options)
	require.Empty(t, again.Missing)
	require.Equal(t, [][]string{{alice.Fingerprint}}, asked, "asked once, for what was missing")
	require.Len(t, r.runs, 2)
	require.Eventually(t, func() bool { return len(r.Processes()) == 0 }, patience, 10*time.Millisecond,
		"no agent was started")
}

// TestPrepareReturnsBeforeTheKeysAreThere: the forward is asked for meanwhile,
// and gpg on the host then signs with the local key.
func TestPrepareReturnsBeforeTheKeysAreThere(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	r.startAgent(t)
	h, key := home(t)
	forwarded := make(chan struct{})
	p, err := prepare.Prepare(t.Context(), r, prepare.Options{
		Evict:  true,
		Wanted: []prepare.Key{{Fingerprint: key.Fingerprint, OwnerTrust: 6}},
		Export: func(ctx context.Context, fingerprints []string) ([]byte, error) {
			<-forwarded
			return exporter(h, nil)(ctx, fingerprints)
		},
	})
	require.NoError(t, err)
	r.forward(t, extraSocket(t, h))
	close(forwarded)
	_, err = p.Wait()
	require.NoError(t, err)
	r.Run0(t, "echo text | gpg --batch --pinentry-mode error --clearsign | gpg --batch --verify 2>&1")
}

func TestPrepareReportsFailedImport(t *testing.T) {
	h, key := home(t)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		export func(context.Context, []string) ([]byte, error)
		is     error
	}{
		"export fails": {func(context.Context, []string) ([]byte, error) { return nil, broken }, broken},
		"not a key":    {func(context.Context, []string) ([]byte, error) { return []byte("not a key\n"), nil }, nil},
		"too little":   {func(context.Context, []string) ([]byte, error) { return nil, nil }, nil},
		"no exporter":  {nil, nil},
		"cut short": {func(ctx context.Context, f []string) ([]byte, error) {
			keys, err := exporter(h, nil)(ctx, f)
			return keys[:len(keys)/8], err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
			p, err := prepare.Prepare(t.Context(), r, prepare.Options{
				Wanted: []prepare.Key{{Fingerprint: key.Fingerprint}}, Export: test.export,
			})
			require.NoError(t, err)
			_, err = p.Wait()
			var failed *prepare.ImportError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, []string{key.Fingerprint}, failed.Missing)
			require.NotEmpty(t, failed.Hint())
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
		})
	}
}

func TestPrepareEndsWithItsContext(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{KeyOptions: `command="sleep 600"`})
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(300*time.Millisecond, cancel)
	defer stop.Stop()
	_, err := prepare.Prepare(ctx, r, prepare.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestPrepareRunsNothingForWhatIsNoFingerprint(t *testing.T) {
	r := &remote{}
	for _, fingerprint := range []string{"", "alice", "'; rm -rf /; '", "abcdef0123456789abcdef0123456789abcdef01"} {
		_, err := prepare.Prepare(t.Context(), r, prepare.Options{
			Wanted: []prepare.Key{{Fingerprint: fingerprint}},
		})
		require.Error(t, err)
	}
	require.Empty(t, r.runs)
}
