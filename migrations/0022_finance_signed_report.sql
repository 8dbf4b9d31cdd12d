-- +goose Up
-- The report as it was signed; none: it was signed before reports were kept.
ALTER TABLE finance_periods ADD COLUMN report jsonb;
