package agentside

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listing is made of records as in GnuPG's doc/DETAILS.
const (
	listedID    = "89ABCDEF01234567"
	listedPrint = "0123456789ABCDEF01234567" + listedID
	listedKey   = "pub:u:255:22:" + listedID + ":1:::u:\nfpr:::::::::" + listedPrint + ":\n"
	listedUser  = "uid:u::::1::AABBCCDDEEFF00112233445566778899AABBCCDD::Alice:\n"
	listedSub   = "sub:u:255:18:1122334455667788:1::::::e:\nfpr:::::::::" + "FFFF456789ABCDEF01234567" + listedID + ":\n"
)

func listedSig(kind, id, class string, created any) string {
	return fmt.Sprintf("%s:!::22:%s:%v::::name:%s:\n", kind, id, created, class)
}

// Which signatures say that a key is the same as another's copy of it.
func TestSelfSignaturesThatCount(t *testing.T) {
	own := func(class string, created any) string { return listedSig("sig", listedID, class, created) }
	for listing, want := range map[string][]string{
		"":                                   nil,
		own("1fx", 5):                        {"-1f-5"},
		listedUser + own("13x", 5):           {"AABBCCDD-13-5"},
		listedSub + own("18x", 5):            {"55667788-18-5"},
		listedUser + own("13x,00", 5):        {"AABBCCDD-13-5"},
		listedUser + own("13l", 5):           nil, // is not exported
		listedUser + own("13", 5):            nil,
		listedUser + own("1", 5):             nil,
		listedUser + own("", 5):              nil,
		listedUser + own("zzx", 5):           nil,
		listedUser + own("13x", ""):          nil,
		listedUser + own("13x", "x"):         nil,
		listedUser + own("13x", 12345678901): nil,
		listedUser + listedSig("sig", "00BCDEF01234567A", "13x", 5):            nil, // another's
		listedUser + listedSig("rev", listedID, "30x", 5):                      {"AABBCCDD-30-5"},
		listedUser + listedSig("tru", listedID, "13x", 5):                      nil,
		"uat:u::::1::AA::1 2:\n" + own("13x", 5):                               nil,
		listedUser + own("13x", 5) + own("13x", 7) + own("13x", 6):             {"AABBCCDD-13-7"},
		listedUser + own("13x", 5) + own("30x", 7):                             {"AABBCCDD-30-7"}, // whatever its class
		listedUser + own("13x", 5) + own("10x", 5) + own("13x", 5):             {"AABBCCDD-13-5", "AABBCCDD-10-5"},
		own("1fx", 5) + own("20x", 6) + own("1fx", 7):                          {"-1f-7", "-20-6"}, // each class by itself
		listedUser + own("13x", 5) + listedSub + own("18x", 4):                 {"55667788-18-4", "AABBCCDD-13-5"},
		listedUser + own("13x", 5) + "uat:\n" + own("13x", 9):                  {"AABBCCDD-13-5"},
		"uid:u::::1::AA::Bob:\n" + own("13x", 5):                               {"AA-13-5"},
		"sub:u:255:18:77:1:\n" + own("18x", 5):                                 {"77-18-5"},
		strings.TrimSuffix(own("1fx", 5), ":\n"):                               {"-1f-5"},
		strings.ReplaceAll(listedUser+own("13x", 5), "\n", "\r\n"):             {"AABBCCDD-13-5"},
		strings.TrimSuffix(strings.Split(own("1fx", 5), "1fx")[0], ":") + "\n": nil,
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			require.Equal(t, []Key{{Fingerprint: listedPrint, SelfSignatures: want}}, readKeys(listedKey+listing, step), "%s", listing)
		}
	}
}

// A key begins with its pub or sec, and what has no usable fingerprint is none.
func TestKeysOfAListing(t *testing.T) {
	const other = "FFFF456789ABCDEF0123456789ABCDEF01234567"
	second := "sec:u:255:22:0123456789ABCDEF:1:::u:\nfpr:::::::::" + other + ":\n"
	bad := strings.Replace(listedKey, listedPrint, "0123", 1)
	sign := listedSig("sig", listedID, "1fx", 5)
	for listing, want := range map[string][]Key{
		"":                             nil,
		"fpr:::::::::" + other + ":\n": nil,
		sign + listedUser:              nil,
		sign + listedKey:               {{Fingerprint: listedPrint}},
		listedKey + second:             {{Fingerprint: listedPrint}, {Fingerprint: other}},
		bad + sign + second:            {{Fingerprint: other}},
		bad + "fpr:::::::::" + other:   nil,
		"pub:u:255:22:" + listedID + ":\n" + second:            {{Fingerprint: other}},
		listedKey + sign + second + sign:                       {{Fingerprint: listedPrint, SelfSignatures: []string{"-1f-5"}}, {Fingerprint: other}},
		listedKey + listedSub + "fpr:::::::::" + other + ":\n": {{Fingerprint: listedPrint}},
	} {
		require.Equal(t, want, readKeys(listing, 5), "%s", listing)
	}
}

// A line is taken up to its bound, however it comes, and the next one counts again.
func TestListedLineOfExactlyTheLimit(t *testing.T) {
	fpr := "fpr:::::::::" + listedPrint + ":"
	for length, taken := range map[int]bool{maxListLine: true, maxListLine + 1: false, 3 * maxListLine: false} {
		line := fpr + strings.Repeat("x", length-len(fpr)) + "\n"
		for _, step := range []int{1, 1000, maxListLine, maxListLine + 1, 1 << 20} {
			keys := readKeys("pub:\n"+line, step)
			require.Equal(t, taken, len(keys) == 1, "%d in steps of %d", length, step)
			require.Len(t, readKeys("pub:\n"+line+fpr+"\n", step), 1)
		}
	}
}
