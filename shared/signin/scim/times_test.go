package scim

import (
	"fmt"
	"testing"

	"gateway/shared/fault"
)

// TestTimesAreComparedOnlyWithTimes covers every comparison of every time of a resource.
func TestTimesAreComparedOnlyWithTimes(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"meta.created", "meta.lastModified", "META.Created", "urn:ietf:params:scim:schemas:core:2.0:User:meta.created"} {
		for _, op := range []string{"eq", "ne", "gt", "ge", "lt", "le"} {
			for _, value := range []string{`"not-a-date"`, `""`, `"2026-01-31"`, `"2026-13-01T00:00:00Z"`, `5`, `true`} {
				for _, form := range []string{"%s %s %s", "not (%s %s %s)", `userName eq "a" or %s %s %s`} {
					filter := fmt.Sprintf(form, path, op, value)
					_, err := ParseFilter(filter)
					if TypeOf(fault.From(err)) != InvalidFilter || err == nil {
						t.Errorf("%s: %v", filter, err)
					}
				}
			}
			for _, value := range []string{`"2026-01-31T12:00:00Z"`, `"2026-01-31T12:00:00.123+02:00"`} {
				if _, err := ParseFilter(path + " " + op + " " + value); err != nil {
					t.Errorf("%s %s %s: %v", path, op, value, err)
				}
			}
		}
	}
	if _, err := ParseFilter(`meta[created lt "x"]`); TypeOf(fault.From(err)) != InvalidFilter || err == nil {
		t.Errorf("in brackets: %v", err)
	}
	for _, filter := range []string{`meta.created pr`, `meta.created sw "2026"`, `meta.resourceType eq "User"`, `created lt "x"`, `meta.created eq null`} {
		if _, err := ParseFilter(filter); err != nil {
			t.Errorf("%s: %v", filter, err)
		}
	}
}
