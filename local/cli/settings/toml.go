package settings

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// statement is a part of a TOML file: a line, or several when its value spans lines.
type statement struct {
	start, end int    // end is after the end of the line
	table      string // of a header: its name; else ""
	key        string // of an assignment: its name; else ""
}

// SetTOML sets a key of the root table. It is written to the first line, before any table
// begins. An earlier assignment is removed.
func SetTOML(src []byte, key, value string) ([]byte, error) {
	list, err := statements(src)
	if err != nil {
		return nil, err
	}
	bom := len(src) - len(bytes.TrimPrefix(src, []byte("\ufeff")))
	out := append(append([]byte{}, src[:bom]...), key+" = "+value+"\n"...)
	root := true
	for _, s := range list {
		root = root && s.table == ""
		if root && s.key == key {
			continue
		}
		out = append(out, src[max(s.start, bom):s.end]...)
	}
	return out, nil
}

// SetTableTOML replaces a table, with the tables below it, by one of these lines at the end.
func SetTableTOML(src []byte, name string, lines ...string) ([]byte, error) {
	list, err := statements(src)
	if err != nil {
		return nil, err
	}
	var out []byte
	table := ""
	for _, s := range list {
		if s.table != "" {
			table = s.table
		}
		if within(table, name) {
			continue
		}
		if s.key != "" {
			full := s.key
			if table != "" {
				full = table + "." + s.key
			}
			// A dotted key or an inline table above: a header would define it twice.
			if within(full, name) || within(name, full) {
				return nil, fmt.Errorf("line %d: %s is defined by another form; write it as the table [%s] or remove it", bytes.Count(src[:s.start], []byte("\n"))+1, full, name)
			}
		}
		out = append(out, src[s.start:s.end]...)
	}
	if out = bytes.TrimRight(out, " \t\r\n"); len(out) > 0 {
		out = append(out, "\n\n"...)
	}
	return append(out, "["+name+"]\n"+strings.Join(lines, "\n")+"\n"...), nil
}

// within reports whether a dotted name is another one or below it.
func within(name, of string) bool { return name == of || strings.HasPrefix(name, of+".") }

// QuoteTOML returns a basic string.
func QuoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// statements splits a file. Concatenated they are the complete file.
func statements(src []byte) ([]statement, error) {
	if len(src) > MaxSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxSize)
	}
	var list []statement
	i := 0
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		i = 3
	}
	for start := 0; start < len(src); {
		s := statement{start: start}
		i = skipBlank(src, max(i, start))
		var err error
		switch {
		case i >= len(src) || src[i] == '\n' || src[i] == '#':
			i = lineEnd(src, i)
		case src[i] == '[':
			s.table, i, err = tomlHeader(src, i)
		default:
			s.key, i, err = tomlAssignment(src, i)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", bytes.Count(src[:start], []byte("\n"))+1, err)
		}
		s.end, start = i, i
		list = append(list, s)
	}
	return list, nil
}

func skipBlank(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\t' || src[i] == '\r') {
		i++
	}
	return i
}

// lineEnd returns the offset after the end of the line.
func lineEnd(src []byte, i int) int {
	if n := bytes.IndexByte(src[min(i, len(src)):], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(src)
}

func tomlHeader(src []byte, i int) (name string, end int, err error) {
	for i < len(src) && src[i] == '[' {
		i++
	}
	if name, i, err = tomlName(src, i, ']'); err != nil {
		return "", i, err
	}
	for i < len(src) && src[i] == ']' {
		i++
	}
	return name, lineEnd(src, i), nil
}

// tomlName reads a dotted name up to a byte and returns it without quotes.
func tomlName(src []byte, i int, until byte) (string, int, error) {
	var parts []string
	for {
		i = skipBlank(src, i)
		var part string
		if i < len(src) && (src[i] == '"' || src[i] == '\'') {
			n := bytes.IndexByte(src[i+1:], src[i])
			if n < 0 {
				return "", i, errors.New("a name is not closed")
			}
			part, i = string(src[i+1:i+1+n]), i+n+2
		} else {
			from := i
			for i < len(src) && (src[i] == '_' || src[i] == '-' || src[i] >= '0' && src[i] <= '9' || src[i]|0x20 >= 'a' && src[i]|0x20 <= 'z') {
				i++
			}
			if part = string(src[from:i]); part == "" {
				return "", i, errors.New("a name is missing")
			}
		}
		parts = append(parts, part)
		i = skipBlank(src, i)
		switch {
		case i < len(src) && src[i] == '.':
			i++
		case i < len(src) && src[i] == until:
			return strings.Join(parts, "."), i, nil
		default:
			return "", i, fmt.Errorf("%q is missing after %.100q", until, strings.Join(parts, "."))
		}
	}
}

func tomlAssignment(src []byte, i int) (key string, end int, err error) {
	if key, i, err = tomlName(src, i, '='); err != nil {
		return "", i, err
	}
	depth := 0
	for i++; i < len(src); {
		switch c := src[i]; c {
		case '"', '\'':
			if i, err = tomlString(src, i); err != nil {
				return "", i, err
			}
		case '#':
			i = lineEnd(src, i)
			if depth == 0 {
				return key, i, nil
			}
		case '\n':
			i++
			if depth == 0 {
				return key, i, nil
			}
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		default:
			i++
		}
	}
	if depth > 0 {
		return "", i, fmt.Errorf("the value of %.100q does not end", key)
	}
	return key, i, nil
}

func tomlString(src []byte, i int) (int, error) {
	quote := src[i]
	long := bytes.Repeat([]byte{quote}, 3)
	if bytes.HasPrefix(src[i:], long) {
		for j := i + 3; j < len(src); j++ {
			switch {
			case quote == '"' && src[j] == '\\':
				j++
			case bytes.HasPrefix(src[j:], long):
				for j += 3; j < len(src) && src[j] == quote; j++ {
				}
				return j, nil
			}
		}
		return i, errors.New("a string is not closed")
	}
	for j := i + 1; j < len(src); j++ {
		switch {
		case quote == '"' && src[j] == '\\':
			j++
		case src[j] == '\n':
			return i, errors.New("a string is not closed")
		case src[j] == quote:
			return j + 1, nil
		}
	}
	return i, errors.New("a string is not closed")
}

// diffContext is the number of equal lines shown around a change.
const diffContext = 3

// maxTable limits the table of the comparison; larger changes are shown as one replacement.
const maxTable = 4_000_000

// Diff returns a unified diff of two texts, "" if they are equal.
func Diff(name, before, after string) string {
	if before == after {
		return ""
	}
	ops := compare(lines(before), lines(after))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	for i := 0; i < len(ops); {
		if ops[i].mark == ' ' {
			i++
			continue
		}
		from, to := max(i-diffContext, 0), i
		for equal := 0; to < len(ops) && equal <= 2*diffContext; to++ {
			if equal++; ops[to].mark != ' ' {
				equal = 0
			}
		}
		for to > i && ops[to-1].mark == ' ' {
			to--
		}
		to = min(to+diffContext, len(ops))
		hunk(&b, ops, from, to)
		i = to
	}
	return b.String()
}

type op struct {
	mark byte
	text string
}

func hunk(b *strings.Builder, ops []op, from, to int) {
	oldAt, newAt := 1, 1
	for _, o := range ops[:from] {
		if o.mark != '+' {
			oldAt++
		}
		if o.mark != '-' {
			newAt++
		}
	}
	olds, news := 0, 0
	for _, o := range ops[from:to] {
		if o.mark != '+' {
			olds++
		}
		if o.mark != '-' {
			news++
		}
	}
	if olds == 0 {
		oldAt--
	}
	if news == 0 {
		newAt--
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", oldAt, olds, newAt, news)
	for _, o := range ops[from:to] {
		b.WriteByte(o.mark)
		b.WriteString(strings.TrimSuffix(o.text, "\n"))
		b.WriteByte('\n')
		if !strings.HasSuffix(o.text, "\n") {
			b.WriteString("\\ No newline at end of file\n")
		}
	}
}

func lines(s string) []string {
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// compare finds a shortest list of changes by the longest common subsequence.
func compare(a, b []string) []op {
	var head, tail []op
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head, a, b = append(head, op{' ', a[0]}), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, op{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	ops := head
	if len(a)*len(b) > maxTable {
		for _, s := range a {
			ops = append(ops, op{'-', s})
		}
		for _, s := range b {
			ops = append(ops, op{'+', s})
		}
	} else {
		ops = append(ops, subsequence(a, b)...)
	}
	for i := len(tail) - 1; i >= 0; i-- {
		ops = append(ops, tail[i])
	}
	return ops
}

func subsequence(a, b []string) (ops []op) {
	w := len(b) + 1
	most := make([]int32, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				most[i*w+j] = most[(i+1)*w+j+1] + 1
			} else {
				most[i*w+j] = max(most[(i+1)*w+j], most[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			ops = append(ops, op{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && most[(i+1)*w+j] >= most[i*w+j+1]:
			ops = append(ops, op{'-', a[i]})
			i++
		default:
			ops = append(ops, op{'+', b[j]})
			j++
		}
	}
	return ops
}
