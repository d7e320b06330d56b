package setup

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/target"
)

// A new text in a Spec is written with its "%" doubled, or named here.
func TestEachLiteralKnowsAllTexts(t *testing.T) {
	spec := target.NewSpec("")
	fields := reflect.ValueOf(&spec).Elem()
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() == reflect.String {
			field.SetString("%h")
		}
	}
	eachLiteral(&spec, func(text string) string { return strings.ReplaceAll(text, "%", "%%") })
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() == reflect.String {
			want := "%%h"
			switch fields.Type().Field(i).Name {
			case "Host", "User", "JumpHosts", "Via":
				want = "%h"
			}
			require.Equal(t, want, field.String(), fields.Type().Field(i).Name)
		}
	}
}
