package httpapi

import (
	"context"
	"fmt"
)

const (
	routeHealth = "GET /healthz"
	routeReady  = "GET /readyz"
)

type statusOutput struct {
	Body struct {
		Status string `json:"status" enum:"ok"`
	}
}

func ok() *statusOutput {
	out := &statusOutput{}
	out.Body.Status = "ok"
	return out
}

// healthz says that the process is alive, and asks nobody: a database that is down is no reason to restart.
func (s *Server) healthz(context.Context, *exchange, *struct{}) (*statusOutput, error) {
	return ok(), nil
}

// readyz says whether traffic should be sent here.
func (s *Server) readyz(ctx context.Context, _ *exchange, _ *struct{}) (*statusOutput, error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	return ok(), nil
}

// Ready is nil while traffic should be sent here: not while draining, nor without a usable database.
func (s *Server) Ready(ctx context.Context) error {
	if s.draining.Load() {
		return newProblem(CodeNotReady, "The process is about to stop.")
	}
	if err := s.config.Ready(ctx); err != nil {
		return fmt.Errorf("%w: %w", newProblem(CodeNotReady, "The database cannot be used."), err)
	}
	return nil
}
