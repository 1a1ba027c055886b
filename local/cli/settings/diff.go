package settings

import (
	"fmt"
	"strings"
)

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
