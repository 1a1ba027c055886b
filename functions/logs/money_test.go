package logs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"gateway/shared/testkit/admintest"
)

// TestEveryViewOfALogAgreesOnItsCost reads one priced request through the list, the log, its
// explanation and exports in every format, and compares unit and US dollars.
func TestEveryViewOfALogAgreesOnItsCost(t *testing.T) {
	in := install(t)
	key := admintest.WorkspaceA
	rec := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	in.store(t, rec)
	const want = `"cost":1.2345678,"cost_unit":"cents","cost_usd":0.012345678`
	view := func(name string, v any) {
		t.Helper()
		m, _ := v.(map[string]any)
		raw, err := json.Marshal(map[string]any{"cost": m["cost"], "cost_unit": m["cost_unit"], "cost_usd": m["cost_usd"]})
		if err != nil || string(raw) != "{"+want+"}" {
			t.Errorf("%s: %s %v", name, raw, err)
		}
	}
	view("the list", in.Do("GET", "/logs", key, nil).OK().At("data", "0"))
	view("the log", in.Do("GET", "/logs/"+rec.ID, key, nil).OK().At("metrics"))
	view("the explanation", in.Do("GET", "/logs/"+rec.ID+"/explain", key, nil).OK().At())
	for format, text := range map[string]string{"jsonl": "{" + want + "}\n", "csv": "cost,cost_unit,cost_usd\r\n1.2345678,cents,0.012345678\r\n", "parquet": ""} {
		id := in.Do("POST", "/logs/exports", key, fmt.Sprintf(`{"filters":{},"requested_data":["cost","cost_unit","cost_usd"],"format":%q}`, format)).OK().Text("id")
		in.Do("POST", "/logs/exports/"+id+"/start", key, nil).OK()
		in.work(t)
		file := in.exported(t, key, id)
		if format != "parquet" {
			if file != text {
				t.Errorf("%s: %q", format, file)
			}
			continue
		}
		f, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]parquet.Row, 1)
		if n, _ := f.RowGroups()[0].Rows().ReadRows(rows); n != 1 || rows[0][1].String() != "cents" || rows[0][2].Int64() != 12_345_678 {
			t.Errorf("parquet: %v", rows)
		}
		if column := f.Schema().String(); !strings.Contains(column, "DECIMAL(18,9)") {
			t.Errorf("parquet: %s", column)
		}
	}
}
