package app

import (
	"strings"
	"testing"
)

func TestStandardHTTP(t *testing.T) {
	for value, want := range map[string]bool{"": false, "standard": true} {
		t.Setenv(EnvHTTP, value)
		if got, err := StandardHTTP(); got != want || err != nil {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"Standard", "1", "true", "standard ", "own"} {
		t.Setenv(EnvHTTP, value)
		if _, err := StandardHTTP(); err == nil || !strings.Contains(err.Error(), EnvHTTP) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
