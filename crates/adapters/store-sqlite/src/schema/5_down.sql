DROP TABLE prices;
ALTER TABLE holds DROP COLUMN reported;
