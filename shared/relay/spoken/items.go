package spoken

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"gateway/shared/dialect/realtime"
)

// Bounds of what is told apart: items of a session, and responses at once. Where answers
// are held, responses beyond it are not sent.
const (
	maxItems = 10_000
	maxOpen  = 64
	maxID    = 512     // bytes of an id that is known
	maxSwaps = 1 << 20 // bytes of texts that were changed
)

// items are what is known of the items of a conversation: whose they are, and what of them
// may be told.
type items struct {
	of    map[string]string            // to their response
	gone  map[string]bool              // those that were denied
	heeds map[[32]byte]struct{}        // transcripts that were judged and stayed, by approval
	swaps map[string]map[string]string // texts that were changed, and what stands in their place
	swapt int                          // bytes of them
}

func newItems() items {
	return items{of: map[string]string{}, gone: map[string]bool{}, heeds: map[[32]byte]struct{}{}, swaps: map[string]map[string]string{}}
}

// belongs notes that an item is one of a response. "" is none; ok is false where it cannot
// be noted.
func (is *items) belongs(item, response string) (ok bool) {
	switch {
	case item == "" || is.of[item] == response:
	case len(is.of) < maxItems && len(item) <= maxID:
		is.of[item] = response
	default:
		return false
	}
	return true
}

// forget holds back what still comes of an item.
func (is *items) forget(item string) {
	if item != "" && len(item) <= maxID && len(is.gone) < maxItems {
		is.gone[item] = true
	}
}

// swap has a text of an item told with another one in its place from now on.
func (is *items) swap(item, old, now string) {
	if is.swapt += len(old) + len(now); is.swapt > maxSwaps {
		is.forget(item) // it cannot be told again
		return
	}
	if is.swaps[item] == nil {
		is.swaps[item] = map[string]string{}
	}
	is.swaps[item][old] = now
}

// approve notes that a transcript was judged and stays.
func (is *items) approve(item, text string) {
	if len(is.heeds) < maxItems {
		is.heeds[approval(item, text)] = struct{}{}
	}
}

func (is *items) approved(item, text string) bool {
	_, ok := is.heeds[approval(item, text)]
	return ok
}

// approval names a transcript of an item.
func approval(item, text string) [32]byte { return sha256.Sum256([]byte(item + "\x00" + text)) }

// unwritten is an event without the transcripts that were not judged; nil where it has
// none. ok is false of one that cannot be sent.
func (is *items) unwritten(e *realtime.Event) (now []byte, ok bool) {
	var at struct{ ID, Role, Type string }
	var item map[string]json.RawMessage
	if json.Unmarshal(e.Item(), &at) != nil || json.Unmarshal(e.Item(), &item) != nil || is.gone[at.ID] {
		return nil, false
	}
	if at.Role == "assistant" || item["content"] == nil {
		return nil, true
	}
	var content []map[string]json.RawMessage
	if json.Unmarshal(item["content"], &content) != nil {
		return nil, false
	}
	held := false
	for _, part := range content {
		for name, raw := range part {
			if !strings.EqualFold(name, "transcript") {
				continue
			}
			var text string
			err := json.Unmarshal(raw, &text)
			if err != nil || text != "" && !is.approved(at.ID, text) {
				part[name], held = json.RawMessage("null"), true
			}
		}
	}
	if !held {
		return nil, true
	}
	return change(e.Body, map[string]any{"item": json.RawMessage(change(e.Item(), map[string]any{"content": content}))}), true
}
