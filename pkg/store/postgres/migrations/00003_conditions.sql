-- +goose Up

-- Since when the conditions of objects have their status, of those that had another.
CREATE TABLE toolctl_conditions (
  uid    text   COLLATE "C" NOT NULL,
  type   text   COLLATE "C" NOT NULL,
  status text   NOT NULL,
  since  bigint NOT NULL,
  PRIMARY KEY (uid, type)
);
