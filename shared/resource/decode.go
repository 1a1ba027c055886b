package resource

import (
	"encoding/json"
	"fmt"
)

// Decode reads the stored form of a record.
func Decode[T any](rec Record) (*T, error) {
	form := new(T)
	if err := json.Unmarshal(rec.Body, form); err != nil {
		return nil, fmt.Errorf("resource: stored %s %s: %w", rec.Kind, rec.ID, err)
	}
	return form, nil
}
