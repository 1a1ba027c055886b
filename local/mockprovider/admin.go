package mockprovider

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// administer serves /__mock/...
func (s *Server) administer(w http.ResponseWriter, r *http.Request, path string) {
	switch r.Method + " " + path {
	case "GET /__mock/bill":
		writeJSON(w, http.StatusOK, s.bill.bill())
	case "DELETE /__mock/bill":
		s.bill.reset()
		w.WriteHeader(http.StatusNoContent)
	case "GET /__mock/requests":
		n := 10
		if q := r.URL.Query().Get("last"); q != "" {
			var err error
			if n, err = strconv.Atoi(q); err != nil || n < 0 {
				writeJSON(w, http.StatusBadRequest, map[string]string{"error": "last must be a number of requests"})
				return
			}
		}
		writeJSON(w, http.StatusOK, s.history.last(n))
	case "DELETE /__mock/requests":
		s.history.reset()
		w.WriteHeader(http.StatusNoContent)
	case "GET /__mock/faults":
		writeJSON(w, http.StatusOK, s.faults.list())
	case "DELETE /__mock/faults":
		s.faults.reset()
		w.WriteHeader(http.StatusNoContent)
	case "POST /__mock/faults":
		var f queuedFault
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		d.DisallowUnknownFields()
		err := d.Decode(&f)
		if err == nil {
			err = s.order(f)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such page of the mock"})
	}
}

// order queues a fault, after it has checked the directives.
func (s *Server) order(f queuedFault) error {
	if f.Next < 1 {
		return errors.New("next must be the number of requests to steer, 1 or more")
	}
	st := unsteered()
	if err := st.read(f.Directives); err != nil {
		return err
	}
	s.faults.add(f)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
