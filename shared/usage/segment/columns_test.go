package segment

import (
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"gateway/shared/usage/segment/columns"
)

// The documented columns are those of the files.
func TestDocumentedColumnsMatchTheFiles(t *testing.T) {
	t.Parallel()
	documented := map[string]string{}
	for _, c := range columns.All {
		documented[c.Name] = c.Type
	}
	for _, f := range parquet.SchemaOf(row{}).Fields() {
		if slices.Contains(columns.Standard, f.Name()) {
			if documented[f.Name()] != "" {
				t.Errorf("%s is offered and is not", f.Name())
			}
			continue
		}
		want := map[string]string{"INT(64,true)": "bigint", "STRING": "string", "BOOLEAN": "boolean", "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)": "timestamp", "MAP": "map<string,string>"}
		kind := f.Type().String()
		if documented[f.Name()] == "" || documented[f.Name()] != want[kind] && kind != "group" {
			t.Errorf("%s is %s in files, told %q", f.Name(), kind, documented[f.Name()])
		}
		delete(documented, f.Name())
	}
	for name := range documented {
		t.Errorf("%s is in no file", name)
	}
	if FilesPrefix("org-1") != columns.Prefix+"org-1/" {
		t.Errorf("files stand below %s", FilesPrefix("org-1"))
	}
}
