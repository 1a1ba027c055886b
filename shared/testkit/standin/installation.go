package standin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed installation.json
var installation []byte

// Installation is what the stacks make, as far as functions can see it. Names and ARNs are
// those of an installation "gateway" in one account.
type Installation struct {
	Tables    map[string]Table
	Queues    map[string]Queue
	Functions map[string]Function
}

// Table is a table of the template.
type Table struct {
	KeySchema            []struct{ AttributeName, KeyType string }
	AttributeDefinitions []struct{ AttributeName, AttributeType string }
	BillingMode          string
	TimeToLive           string // name of the attribute
}

// Queue is a queue of the template; visibility is in seconds.
type Queue struct {
	VisibilityTimeout int
	DeadLetter        string // name of the queue; none: ""
	MaxReceives       int
}

// Function is a function of the template: memory is in MB, timeout in seconds.
type Function struct {
	Memory, Timeout int
	Policy          []Statement
}

// Statement is a statement of a role's policy. All statements allow.
type Statement struct {
	Action, Resource List
	Condition        map[string]map[string]List `json:",omitempty"`
}

// List is one text or a list of texts, as policies have both.
type List []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *List) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(l))
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*l = List{one}
	return nil
}

// Described is the installation that the templates describe.
var Described = sync.OnceValue(func() *Installation {
	var in Installation
	if err := json.Unmarshal(installation, &in); err != nil {
		panic(fmt.Sprintf("standin: installation.json: %v", err)) // a test checks that it can be read
	}
	return &in
})

// bucketName is the bucket's name in the policies of the installation.
const bucketName = "gateway-bucket"

// order lists the names of queues so that each comes after its dead-letter queue.
func (in *Installation) order() []string {
	names := slices.Sorted(maps.Keys(in.Queues))
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(in.Queues[a].DeadLetter, in.Queues[b].DeadLetter)
	})
	return names
}
