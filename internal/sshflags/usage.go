package sshflags

import "strings"

// usageWidth is that of ssh's own usage, in columns.
const usageWidth = 78

// Usage returns the usage of a program that takes ssh's flags and more, as ssh prints it.
func Usage(program string, more ...string) string {
	var letters strings.Builder
	var words []string
	for _, f := range Table() {
		if f.Value == "" {
			letters.WriteByte(f.Letter)
		} else {
			words = append(words, "[-"+string(f.Letter)+" "+f.Value+"]")
		}
	}
	words = append([]string{"[-" + letters.String() + "]"}, words...)
	for _, flag := range more {
		words = append(words, "["+flag+"]")
	}
	words = append(words, "destination [command [argument ...]]")

	var b strings.Builder
	line := "usage: " + program
	indent := strings.Repeat(" ", len(line))
	for _, word := range words {
		if len(line)+1+len(word) > usageWidth {
			b.WriteString(line + "\n")
			line = indent
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// Help returns a line on each flag, for a longer help.
func Help() string {
	var b strings.Builder
	for _, f := range Table() {
		name := "-" + string(f.Letter) + " " + f.Value
		b.WriteString("  " + name + strings.Repeat(" ", max(1, 26-len(name))) + f.Does + "\n")
	}
	return b.String()
}
