package realtime

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"gateway/shared/dialect/realtime"
)

// Limits of the tracked items of a session, and of concurrent responses. If responses are held,
// further ones are not sent.
const (
	maxItems = 10_000
	maxOpen  = 64
	maxID    = 512     // bytes of a tracked id
	maxSwaps = 1 << 20 // bytes of changed texts
)

// itemLog tracks the items of a conversation: their responses, and which of their texts may be
// sent.
type itemLog struct {
	of    map[string]string            // by item, its response
	gone  map[string]bool              // those that were denied
	heeds map[[32]byte]struct{}        // transcripts that were judged and unchanged, by approval
	swaps map[string]map[string]string // changed texts, with their replacements
	swapt int                          // bytes of them
}

func newItems() itemLog {
	return itemLog{of: map[string]string{}, gone: map[string]bool{}, heeds: map[[32]byte]struct{}{}, swaps: map[string]map[string]string{}}
}

// belongs records that an item is part of a response. "" is none; ok is false if the limit is
// reached.
func (is *itemLog) belongs(item, response string) (ok bool) {
	switch {
	case item == "" || is.of[item] == response:
	case len(is.of) < maxItems && len(item) <= maxID:
		is.of[item] = response
	default:
		return false
	}
	return true
}

// forget holds back all further events of an item.
func (is *itemLog) forget(item string) {
	if item != "" && len(item) <= maxID && len(is.gone) < maxItems {
		is.gone[item] = true
	}
}

// swap replaces a text of an item in all further events.
func (is *itemLog) swap(item, old, now string) {
	if is.swapt += len(old) + len(now); is.swapt > maxSwaps {
		is.forget(item) // the item cannot be sent again
		return
	}
	if is.swaps[item] == nil {
		is.swaps[item] = map[string]string{}
	}
	is.swaps[item][old] = now
}

// approve records that a transcript was judged and is unchanged.
func (is *itemLog) approve(item, text string) {
	if len(is.heeds) < maxItems {
		is.heeds[approval(item, text)] = struct{}{}
	}
}

func (is *itemLog) approved(item, text string) bool {
	_, ok := is.heeds[approval(item, text)]
	return ok
}

// approval returns the key of an item's transcript.
func approval(item, text string) [32]byte { return sha256.Sum256([]byte(item + "\x00" + text)) }

// unwritten returns an event without unjudged transcripts; nil if it has none. ok is false if
// the event cannot be sent.
func (is *itemLog) unwritten(e *realtime.Event) (now []byte, ok bool) {
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
