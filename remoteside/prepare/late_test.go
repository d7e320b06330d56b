package prepare

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// rawHost reads its input as it likes; it is given the marker, which it has read.
type rawHost func(ctx context.Context, marker string, stdin io.Reader, stdout io.Writer) error

func (h rawHost) Run(ctx context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) error {
	in := bufio.NewReaderSize(stdin, 16)
	marker, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	return h(ctx, marker[:len(marker)-1], in, stdout)
}

func lackingA(marker string) string {
	return fmt.Sprintf("%[1]s start\n%[1]s ready /s\n%[1]s missing %[2]s\n%[1]s compared\n", marker, keyA)
}

func wantA(keys int) Options {
	return Options{
		Wanted: []Key{{Fingerprint: keyA}},
		Export: func(context.Context, []string) ([]byte, error) { return make([]byte, keys), nil },
	}
}

// A host that asks for keys and does not read them is waited for no longer than one
// that does.
func TestKeysThatAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p, err := Prepare(t.Context(), rawHost(func(ctx context.Context, marker string, _ io.Reader, stdout io.Writer) error {
			_, _ = io.WriteString(stdout, lackingA(marker))
			<-ctx.Done()
			return ctx.Err()
		}), wantA(1))
		require.NoError(t, err)
		go func() { // so that the test fails, and does not hang
			select {
			case <-p.ended:
			case <-time.After(time.Hour):
				p.cancel()
			}
		}()
		_, err = p.Wait()
		require.ErrorIs(t, err, errAbandoned)
		require.Equal(t, importTimeout(1)+importGrace, time.Since(start))
	})
}

// A slow link that carries many keys is given the time.
func TestKeysThatAreReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts = 5
		p, err := Prepare(t.Context(), rawHost(func(ctx context.Context, marker string, stdin io.Reader, stdout io.Writer) error {
			_, _ = io.WriteString(stdout, lackingA(marker))
			_, err := bufio.NewReader(stdin).ReadString('\n')
			part := make([]byte, keysPart)
			for range parts - 1 {
				time.Sleep(importTimeout(1) + importGrace - time.Second)
				if err == nil {
					_, err = io.ReadFull(stdin, part)
				}
			}
			go func() { _, _ = io.Copy(io.Discard, stdin) }()
			if ctx.Err() != nil || err != nil {
				return fmt.Errorf("cut: %w, %w", ctx.Err(), err)
			}
			_, err = fmt.Fprintf(stdout, "%[1]s imported %[2]s\n%[1]s done\n", marker, keyA)
			return err
		}), wantA(parts*keysPart))
		require.NoError(t, err)
		result, err := p.Wait()
		require.NoError(t, err)
		require.Equal(t, []string{keyA}, result.Imported)
	})
}

// What goes on when it has said that it is done is ended, and is no failure.
func TestCommandThatIsDoneAndDoesNotEnd(t *testing.T) {
	for _, text := range []string{"", "imported " + keyA} {
		synctest.Test(t, func(t *testing.T) {
			start, options := time.Now(), Options{}
			if text != "" {
				options = wantA(1)
			}
			p, err := Prepare(t.Context(), rawHost(func(ctx context.Context, marker string, stdin io.Reader, stdout io.Writer) error {
				go func() { _, _ = io.Copy(io.Discard, stdin) }()
				if text == "" {
					_, _ = fmt.Fprintf(stdout, "%[1]s start\n%[1]s ready /s\n", marker)
				} else {
					_, _ = fmt.Fprintf(stdout, "%s%s %s\n", lackingA(marker), marker, text)
				}
				_, _ = fmt.Fprintf(stdout, "%s done\n", marker)
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				return ctx.Err()
			}), options)
			require.NoError(t, err)
			_, err = p.Wait()
			require.NoError(t, err)
			require.Equal(t, doneGrace, time.Since(start))
		})
	}
}
